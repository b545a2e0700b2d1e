import os

from openai import OpenAI

client = OpenAI(base_url="{{ base_url }}", api_key=os.environ["NAN_API_KEY"])
answer = client.responses.create(model="{{ model }}", input="Say hello in one short sentence.")
print(answer.output_text)
