// The smallest reverse proxy on http-proxy: one listener, one origin. Everything it does is said in one JSON file, the
// only argument: what the library and node are given is what stands there, and what is absent keeps their defaults.
//
// It does not know what measures it. `--version` says the library's version, `--check <file>` reads the file and ends.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { constants } = require('node:crypto');
const httpProxy = require('http-proxy');

const KNOWN = ['listen', 'target', 'agent', 'server', 'tls', 'workers'];

function main(args) {
  if (args[0] === '--version') {
    console.log(`http-proxy ${require('http-proxy/package.json').version} on node ${process.versions.node}`);
    return;
  }
  const check = args[0] === '--check';
  const settings = read(args[check ? 1 : 0]);
  if (check) {
    handlers(settings);
    return;
  }
  if (settings.workers > 1 && cluster.isPrimary) lead(settings.workers);
  else serve(settings);
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

function handlers(settings) {
  const options = { target: settings.target };
  if (settings.agent) options.agent = new http.Agent(settings.agent);
  const proxy = httpProxy.createProxyServer(options);
  // Without a listener of its own the library throws, which ends the process when the origin refuses one connection.
  proxy.on('error', (error, request, response) => {
    if (response.headersSent || typeof response.writeHead !== 'function') response.destroy();
    else response.writeHead(502).end();
  });
  const forward = (request, response) => proxy.web(request, response);
  const own = settings.server || {};
  return settings.tls ? https.createServer({ ...own, ...tls(settings.tls) }, forward) : http.createServer(own, forward);
}

function tls({ cert, key, tickets, ...rest }) {
  const options = { cert: fs.readFileSync(cert), key: fs.readFileSync(key), ...rest };
  // Node keeps no sessions itself: without tickets there is nothing to resume.
  if (tickets === false) options.secureOptions = constants.SSL_OP_NO_TICKET;
  return options;
}

function serve(settings) {
  const server = handlers(settings);
  server.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  server.listen(settings.listen.port, settings.listen.host);
  process.on('SIGTERM', () => server.close(() => process.exit(0)));
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exit(2);
}
