import os

from langchain_openai import ChatOpenAI

chat = ChatOpenAI(
    model="{{ model }}",
    base_url="{{ base_url }}",
    api_key=os.environ["NAN_API_KEY"],
)
print(chat.invoke("Say hello in one short sentence.").text)
