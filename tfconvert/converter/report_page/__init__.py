"""The report as a page to look at, and the model's graphs before and after, which it draws."""
