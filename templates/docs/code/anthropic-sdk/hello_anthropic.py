import os

from anthropic import Anthropic

client = Anthropic(base_url="{{ api_url }}", auth_token=os.environ["NAN_API_KEY"], api_key=None)
answer = client.messages.create(
    model="{{ model }}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Say hello in one short sentence."}],
)
print("".join(block.text for block in answer.content if block.type == "text"))
