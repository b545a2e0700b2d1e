import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: "{{ api_url }}",
  authToken: process.env.NAN_API_KEY,
  apiKey: null,
});
const answer = await client.messages.create({
  model: "{{ model }}",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Say hello in one short sentence." }],
});
console.log(answer.content.filter((block) => block.type === "text").map((block) => block.text).join(""));
