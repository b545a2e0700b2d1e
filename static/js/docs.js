/* The reader's own key in the examples. It is put in here and nowhere else: the field has no name
   and is in no form, nothing is stored, and the file to download is made in this page. */
(function () {
  const field = document.getElementById('own-key')
  if (!field) return
  const places = document.querySelectorAll('[data-key]')
  const nothing = field.dataset.placeholder

  function put () {
    const key = field.value.trim()
    places.forEach(function (place) { place.textContent = key || nothing })
  }

  function save (name, text) {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
    link.download = name
    link.click()
    setTimeout(function () { URL.revokeObjectURL(link.href) }, 1000)
  }

  document.querySelectorAll('a[data-file]').forEach(function (link) {
    link.addEventListener('click', async function (event) {
      const key = field.value.trim()
      if (!key) return
      event.preventDefault()
      const answer = await fetch(link.href)
      if (answer.ok) save(link.dataset.file, (await answer.text()).replaceAll(nothing, key))
    })
  })

  function forget () {
    field.value = ''
    put()
  }

  field.addEventListener('input', put)
  window.addEventListener('pagehide', forget)
  window.addEventListener('pageshow', forget)
  document.getElementById('own-key-field').hidden = false
})()
