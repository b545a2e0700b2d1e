import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "{{ base_url }}",
  apiKey: process.env.NAN_API_KEY,
});
const answer = await client.responses.create({
  model: "{{ model }}",
  input: "Say hello in one short sentence.",
});
console.log(answer.output_text);
