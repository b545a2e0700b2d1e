import os

from openai import OpenAI

client = OpenAI(base_url="{{ base_url }}", api_key=os.environ["NAN_API_KEY"])
answer = client.chat.completions.create(
    model="{{ model }}",
    messages=[{"role": "user", "content": "Say hello in one short sentence."}],
)
print(answer.choices[0].message.content)
