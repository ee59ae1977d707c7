"""From values to buffers: what is allocated when, how large it is, and what each program costs as a formula."""
