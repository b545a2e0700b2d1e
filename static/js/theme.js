/* Loaded in the head and not deferred, so that a remembered theme stands before the first paint. */
(function () {
  const root = document.documentElement
  const system = window.matchMedia('(prefers-color-scheme: dark)')

  function remembered () {
    try { return localStorage.getItem('theme') } catch { return null }
  }

  function remember (theme) {
    try {
      if (theme) localStorage.setItem('theme', theme)
      else localStorage.removeItem('theme')
    } catch { /* storage is off: the choice lasts for this page */ }
  }

  function current () {
    return root.dataset.theme || (system.matches ? 'dark' : 'light')
  }

  const start = remembered()
  if (start === 'light' || start === 'dark') root.dataset.theme = start

  function reflect (button) {
    button.setAttribute('aria-pressed', String(current() === 'dark'))
  }

  document.addEventListener('DOMContentLoaded', function () {
    const button = document.getElementById('theme-toggle')
    if (!button) return
    button.hidden = false
    reflect(button)
    system.addEventListener('change', function () { reflect(button) })
    button.addEventListener('click', function () {
      const next = current() === 'dark' ? 'light' : 'dark'
      // Choosing what the system says anyway means: follow the system again.
      const follows = next === (system.matches ? 'dark' : 'light')
      if (follows) delete root.dataset.theme
      else root.dataset.theme = next
      remember(follows ? null : next)
      reflect(button)
    })
  })
})()
