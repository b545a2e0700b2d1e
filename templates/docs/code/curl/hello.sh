curl -sS {{ base_url }}/chat/completions \
  -H "Authorization: Bearer $NAN_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"model": "{{ model }}", "messages": [{"role": "user", "content": "Say hello in one short sentence."}]}'
