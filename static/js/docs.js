/* The reader's own key in the examples. It is put in here and nowhere else: the field has no name
   and is in no form, nothing is stored, and the file to download is made in this page. */
(function () {
  const field = document.getElementById('own-key')
  if (!field) return
  const places = document.querySelectorAll('[data-key]')
  const nothing = field.dataset.placeholder

  const wrong = document.getElementById('own-key_error')
  const invisible = /[\u00ad\u200b-\u200d\u2060\ufeff]/g
  const around = /^[\s"'`“”‘’«»<{,;]+|[\s"'`“”‘’«»>},;\\]+$/g
  const named = /^(?:export\s+)?[a-z_][\w-]*["']?\s*[=:]\s*/i // NAN_API_KEY=, "apiKey":, x-api-key:

  /* Without what is often copied along: blanks, quotes, the name of a variable, Bearer. */
  function plain (pasted) {
    let text = pasted.replace(invisible, '')
    let before
    do {
      before = text
      text = text.replace(around, '').replace(named, '').replace(/^bearer\s*/i, '')
    } while (text !== before)
    return text.replace(/\s+/g, '')
  }

  /* Nothing for what is no key: the examples would look right and fail. */
  function typed () {
    const key = plain(field.value)
    return /^sk-[\w-]{16,}$/.test(key) ? key : ''
  }

  function put () {
    const key = typed()
    places.forEach(function (place) { place.textContent = key || nothing })
  }

  /* Once she has finished: half a key is none either. */
  function judge () {
    const key = typed()
    const isWrong = !key && field.value.trim() !== ''
    if (key) field.value = key
    wrong.hidden = !isWrong
    field.setAttribute('aria-invalid', String(isWrong))
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
      const key = typed()
      if (!key) return
      event.preventDefault()
      const answer = await fetch(link.href)
      if (answer.ok) save(link.dataset.file, (await answer.text()).replaceAll(nothing, key))
    })
  })

  function forget () {
    field.value = ''
    put()
    judge()
  }

  field.addEventListener('input', function (event) {
    put()
    if (typed() || field.value === '' || event.inputType === 'insertFromPaste') judge()
  })
  field.addEventListener('change', judge)
  window.addEventListener('pagehide', forget)
  window.addEventListener('pageshow', forget)
  document.getElementById('own-key-field').hidden = false
})()
