// Says each text in turn on one task, through the official JS client, as a program that knows nothing of our extensions.
// node js_commands.mjs URL KEY TEXT..., with the bearer token in the environment and the metadata key under which a reply
// says what became of a command. Prints for each text the words, the outcome and the data that came, or the error.
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { Role } from '@a2a-js/sdk';

const [url, key, ...texts] = process.argv.slice(2);

const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${process.env.TOKEN}`);
  return fetch(input, { ...init, headers });
};

const client = await new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
})).createFromUrl(url);

const message = (text, taskId) => ({
  message: { messageId: crypto.randomUUID(), role: Role.ROLE_USER, taskId, parts: [{ content: { $case: 'text', value: text } }] },
});

const part = (parts, kind) => parts.find(({ content }) => content.$case === kind)?.content.value ?? null;

let taskId = '';
const answers = [];
for (const text of texts) {
  try {
    let last;
    for await (const { payload } of client.sendMessageStream(message(text, taskId))) {
      last = payload.value;
      taskId ||= last.id;
    }
    const { parts } = last.status.message;
    answers.push({ words: part(parts, 'text'), outcome: last.metadata?.[key]?.outcome ?? null, data: part(parts, 'data') });
  } catch (error) {
    answers.push({ words: error.message, outcome: 'error', data: null });
  }
}
console.log(JSON.stringify({ task_id: taskId, answers }));
