import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "{{ base_url }}",
  apiKey: process.env.NAN_API_KEY,
});
const answer = await client.chat.completions.create({
  model: "{{ model }}",
  messages: [{ role: "user", content: "Say hello in one short sentence." }],
});
console.log(answer.choices[0].message.content);
