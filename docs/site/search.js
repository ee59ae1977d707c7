// Lets people search for options as they write them: a dash before a word would exclude the word.
document.addEventListener("input", ({ target }) => {
  if (target.matches('[data-md-component="search-query"]')) {
    target.value = target.value.replace(/(^|\s)-+/g, "$1");
  }
});
