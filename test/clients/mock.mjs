// A mock of the providers that Hourthree did not write: aimock with a few
// fixtures. Prints {"url": …} when it listens; ends with its standard input.

import { LLMock } from '@copilotkit/aimock';

const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent', chunkSize: 4 });
mock.onMessage('where', { content: 'It is about Malmö, a city in Sweden.' });
mock.onMessage('Which city is this about?', { toolCalls: [{ name: 'lookup_city', arguments: { city: 'Malmö' } }] });
mock.onEmbedding('one', { embedding: [0.25, 0.5, 0.75] });
mock.onEmbedding('two', { embedding: [0.25, 0.5, 0.75] });
mock.onMessage('fail', { error: { message: 'The mock was told to fail.', type: 'invalid_request_error', code: 'told_to' }, status: 400 });
await mock.start();
process.stdout.write(JSON.stringify({ url: mock.url }) + '\n');
process.stdin.on('end', () => mock.stop().then(() => process.exit(0))).resume();
