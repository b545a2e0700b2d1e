/* Copy buttons. `<div class="code" data-copy>` gets one; `<button hidden data-copy="#id">` is shown
   and copies that element's text or value. Without JavaScript there is no button. */
(function () {
  function words () { return document.body.dataset }

  function textOf (element) {
    return 'value' in element ? element.value : element.textContent.replace(/\n$/, '')
  }

  function copyBySelection (text) {
    const area = document.createElement('textarea')
    area.value = text
    area.className = 'visually-hidden'
    document.body.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    return copied
  }

  async function copy (text) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      return copyBySelection(text)
    }
  }

  function say (button, text) {
    const before = button.dataset.label || button.textContent
    button.dataset.label = before
    button.textContent = text
    document.getElementById('announce').textContent = text
    setTimeout(function () {
      button.textContent = before
      document.getElementById('announce').textContent = ''
    }, 2000)
  }

  function prepare (scope) {
    scope.querySelectorAll('.code[data-copy]:not(.has-copy)').forEach(function (box) {
      const button = document.createElement('button')
      button.type = 'button'
      button.className = 'button quiet small'
      button.textContent = words().copy
      button.addEventListener('click', async function () {
        say(button, await copy(textOf(box.querySelector('pre'))) ? words().copied : words().notCopied)
      })
      box.classList.add('has-copy')
      box.prepend(button)
    })
    scope.querySelectorAll('button[data-copy][hidden]').forEach(function (button) {
      button.hidden = false
      button.addEventListener('click', async function () {
        const target = document.querySelector(button.dataset.copy)
        say(button, target && await copy(textOf(target)) ? words().copied : words().notCopied)
      })
    })
  }

  document.addEventListener('DOMContentLoaded', function () {
    prepare(document)
    document.body.addEventListener('htmx:afterSettle', function () { prepare(document) })
  })
})()
