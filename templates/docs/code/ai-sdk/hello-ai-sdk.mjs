import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const nan = createOpenAICompatible({
  name: "nan",
  baseURL: "{{ base_url }}",
  apiKey: process.env.NAN_API_KEY,
  includeUsage: true,
});
const { text } = await generateText({
  model: nan("{{ model }}"),
  prompt: "Say hello in one short sentence.",
});
console.log(text);
