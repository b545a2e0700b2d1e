curl -sS {{ api_url }}/v1/messages \
  -H "x-api-key: $NAN_API_KEY" \
  -H "anthropic-version: 2023-06-01" \
  -H "Content-Type: application/json" \
  -d '{"model": "{{ model }}", "max_tokens": 1024, "messages": [{"role": "user", "content": "Say hello in one short sentence."}]}'
