// Beside each moment in Madrid's time: the same moment where the reader is, if that differs.
(function () {
  // As the server writes them: 30 November 2026, 14:00, in no country's own order.
  const spanish = document.documentElement.lang === 'es'
  const language = spanish ? 'es' : 'en-GB'
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const written = (when, timeZone) => {
    const day = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone }).format(when)
    const time = new Intl.DateTimeFormat(language, { timeStyle: 'short', hourCycle: 'h23', timeZone }).format(when)
    return `${day}${spanish ? ' a las ' : ', '}${time}`
  }

  document.querySelectorAll('.moment').forEach(function (place) {
    const own = place.querySelector('.own-zone')
    const when = new Date(place.querySelector('time').dateTime)
    if (written(when, zone) === written(when, 'Europe/Madrid')) return
    own.textContent = ' – ' + own.dataset.words.replace('{time}', written(when, zone)).replace('{zone}', zone.replaceAll('_', ' '))
    own.hidden = false
  })
})()
