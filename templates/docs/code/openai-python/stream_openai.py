import os

from openai import OpenAI

client = OpenAI(base_url="{{ base_url }}", api_key=os.environ["NAN_API_KEY"])
parts = client.chat.completions.create(
    model="{{ model }}",
    messages=[{"role": "user", "content": "Say hello in one short sentence."}],
    stream=True,
)
for part in parts:
    if part.choices:
        print(part.choices[0].delta.content or "", end="", flush=True)
