import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "{{ base_url }}",
  apiKey: process.env.NAN_API_KEY,
});
const parts = await client.chat.completions.create({
  model: "{{ model }}",
  messages: [{ role: "user", content: "Say hello in one short sentence." }],
  stream: true,
});
for await (const part of parts) {
  process.stdout.write(part.choices[0]?.delta?.content ?? "");
}
