/* allauth's passkey script reports problems as an event (else they end in the console only). */
document.addEventListener('allauth.error', function (event) {
  const notice = document.getElementById('passkey-problem')
  if (!notice) return
  const reasons = { NotAllowedError: 'refused', AbortError: 'refused', InvalidStateError: 'known' }
  const name = event.detail.exception && event.detail.exception.name
  event.preventDefault()
  document.getElementById('main').append(notice)
  notice.className = 'notice bad'
  notice.textContent = notice.dataset[reasons[name] || 'failed']
})
