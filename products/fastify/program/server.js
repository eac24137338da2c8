// The smallest reverse proxy on @fastify/http-proxy: one listener, one origin. Everything it does is said in one JSON file,
// the only argument: what Fastify and the plug-in are given is what stands there, and what is absent keeps their defaults.
//
// It does not know what measures it. `--version` says the plug-in's version, `--check <file>` reads the file and ends.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const { constants } = require('node:crypto');
const Fastify = require('fastify');
const proxy = require('@fastify/http-proxy');

const KNOWN = ['listen', 'proxy', 'http2', 'keepHost', 'tls', 'workers'];

async function main(args) {
  if (args[0] === '--version') {
    const { version } = require('@fastify/http-proxy/package.json');
    console.log(`@fastify/http-proxy ${version} with fastify ${Fastify().version} on node ${process.versions.node}`);
    return;
  }
  const check = args[0] === '--check';
  const settings = read(args[check ? 1 : 0]);
  if (check) await build(settings).ready();
  else if (settings.workers > 1 && cluster.isPrimary) lead(settings.workers);
  else await serve(settings);
}

function read(path) {
  if (!path) throw new Error('no configuration; expected: server.js <file.json>');
  const settings = JSON.parse(fs.readFileSync(path, 'utf8'));
  const unknown = Object.keys(settings).filter((key) => !KNOWN.includes(key));
  if (unknown.length > 0) throw new Error(`${path}: unknown ${unknown.join(', ')}; expected: ${KNOWN.join(', ')}`);
  return settings;
}

// One process a worker; the first only hands out connections, and ends when all of them have.
function lead(workers) {
  let ending = false;
  for (let i = 0; i < workers; i += 1) cluster.fork();
  process.on('SIGTERM', () => {
    ending = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM');
  });
  cluster.on('exit', () => {
    // A worker that dies of itself would leave a proxy of fewer cores than was asked for: better none at all.
    if (!ending) process.exit(1);
    if (Object.keys(cluster.workers).length === 0) process.exit(0);
  });
}

function build(settings) {
  const options = {};
  if (settings.http2) options.http2 = true;
  if (settings.tls) options.https = tls(settings.tls, settings.http2);
  const server = Fastify(options);
  const own = { ...settings.proxy };
  if (settings.keepHost) {
    own.replyOptions = { rewriteRequestHeaders: (request, headers) => ({ ...headers, host: request.host }) };
  }
  server.register(proxy, own);
  return server;
}

function tls({ cert, key, tickets, ...rest }, http2) {
  const options = { cert: fs.readFileSync(cert), key: fs.readFileSync(key), ...rest };
  if (http2) options.allowHTTP1 = true;
  // Node keeps no sessions itself: without tickets there is nothing to resume.
  if (tickets === false) options.secureOptions = constants.SSL_OP_NO_TICKET;
  return options;
}

async function serve(settings) {
  const server = build(settings);
  process.on('SIGTERM', () => server.close().then(() => process.exit(0)));
  await server.listen(settings.listen);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(2);
});
