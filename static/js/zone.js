// Beside each moment in Madrid's time: the same moment where the reader is, if that differs.
(function () {
  const language = document.documentElement.lang
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const written = (when, timeZone) =>
    new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23', timeZone }).format(when)

  document.querySelectorAll('.moment').forEach(function (place) {
    const own = place.querySelector('.own-zone')
    const when = new Date(place.querySelector('time').dateTime)
    if (written(when, zone) === written(when, 'Europe/Madrid')) return
    own.textContent = ' – ' + own.dataset.words.replace('{time}', written(when, zone)).replace('{zone}', zone.replaceAll('_', ' '))
    own.hidden = false
  })
})()
