/* Parts marked `data-live` ask the server every few seconds; not while nobody looks at the page. */
document.addEventListener('htmx:beforeRequest', function (event) {
  if (document.hidden && event.target.closest('[data-live]')) event.preventDefault()
})
