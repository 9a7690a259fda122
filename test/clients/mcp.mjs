// The official MCP client for TypeScript, over standard input and output and
// over HTTP: mcp.mjs stdio COMMAND ARGS..., mcp.mjs http URL [KEY]. It lists the
// tools, reads JSON calls [[tool, arguments], ...] from standard input, makes
// them one after the other, and prints one JSON document. The client holds every
// structured answer to the schema that the server gave for it.

import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [kind, at, ...rest] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(0, 'utf8'));

const transport =
  kind === 'stdio'
    ? new StdioClientTransport({ command: at, args: rest, stderr: 'inherit' })
    : new StreamableHTTPClientTransport(new URL(at), { requestInit: { headers: rest[0] ? { Authorization: `Bearer ${rest[0]}` } : {} } });

const client = new Client({ name: 'hourthree-test', version: '1' });
await client.connect(transport);
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const out = { server: client.getServerVersion(), instructions: client.getInstructions(), tools, resources: resources.length, results: [] };
let runId;
for (const [name, args] of calls) {
  if (args.run_id === 'LAST') args.run_id = runId;
  try {
    const r = await client.callTool({ name, arguments: args });
    runId = r.structuredContent?.run_id ?? runId;
    out.results.push({ name, isError: r.isError ?? false, structured: r.structuredContent, text: r.content?.[0]?.text });
  } catch (e) {
    out.results.push({ name, thrown: String(e?.message ?? e) });
  }
}
await client.close();
process.stdout.write(JSON.stringify(out) + '\n');
