// Holds a conversation through the official JS client, as a program that knows nothing of our extensions does.
// node js_client.mjs URL BINDING, with the bearer token in the environment. Prints what it saw as one line of JSON;
// the test judges it.
import {
  ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
} from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [url, binding] = process.argv.slice(2);

const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${process.env.TOKEN}`);
  return fetch(input, { ...init, headers });
};

const client = await new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  preferredTransports: [binding],
})).createFromUrl(url);

const words = (message) => message?.parts.map((part) => part.content.value).join('');
const seen = ({ payload }) => [payload.$case, TaskState[payload.value.status.state], words(payload.value.status.message) ?? null];

const message = (text, taskId = '') => ({
  message: { messageId: crypto.randomUUID(), role: Role.ROLE_USER, taskId, parts: [{ content: { $case: 'text', value: text } }] },
});

async function say(text, taskId) {
  const events = [];
  for await (const event of client.sendMessageStream(message(text, taskId))) events.push(event);
  return events;
}

async function refused(call) {
  try {
    await call();
    return 'nothing';
  } catch (error) {
    return error.name;
  }
}

const first = await say('hello');
const id = first[0].payload.value.id;

// Open before the turns that it is to see: its first event is awaited, the rest is read meanwhile.
const subscription = client.resubscribeTask({ id })[Symbol.asyncIterator]();
const subscribed = [seen((await subscription.next()).value)];
const rest = (async () => {
  for (let next = await subscription.next(); !next.done; next = await subscription.next()) subscribed.push(seen(next.value));
})();

const second = await say('and again', id);
const blocking = await client.sendMessage(message('once more', id));
const got = await client.getTask({ id });
// Its types want these three; what is left out it sends as the state "UNRECOGNIZED".
const { tasks } = await client.listTasks({ contextId: got.contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '' });
const canceled = await client.cancelTask({ id });
await rest;

console.log(JSON.stringify({
  first: first.map(seen),
  second: second.map(seen),
  blocking: words(blocking.status.message),
  got: [TaskState[got.status.state], got.history.map(words)],
  listed: tasks.map((task) => task.id === id),
  canceled: TaskState[canceled.status.state],
  subscribed,
  refusals: {
    get: await refused(() => client.getTask({ id: 'unknown' })),
    send: await refused(() => client.sendMessage(message('hello?', 'unknown'))),
    sendToEnded: await refused(() => client.sendMessage(message('hello?', id))),
    streamToEnded: await refused(() => say('hello?', id)),
    subscribeToEnded: await refused(() => client.resubscribeTask({ id })[Symbol.asyncIterator]().next()),
    cancelAgain: await refused(() => client.cancelTask({ id })),
    empty: await refused(() => client.sendMessage(message(''))),
  },
}));
