// An OpenID provider that Hourthree did not write: oidc-provider, with its own forms
// for signing in. Whoever signs in as root is in the group sre, as dev in dev, as
// anybody else in none. Takes the redirect address as its argument. Prints
// {"url": …} when it listens; ends with its standard input.

import { createServer } from 'node:http';
import Provider from 'oidc-provider';

console.warn = console.info = () => {}; // it warns of what is for trying only
const groups = { root: ['staff', 'sre'], dev: ['staff', 'dev'] };
const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://localhost:${server.address().port}`;
const provider = new Provider(url, {
  clients: [{ client_id: 'hourthree', client_secret: 'a-secret-of-the-client', redirect_uris: [process.argv[2]] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'email', 'groups'],
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: groups[id] ?? [] }) }),
});
server.on('request', provider.callback());
process.stdout.write(JSON.stringify({ url }) + '\n');
process.stdin.on('end', () => process.exit(0)).resume();
