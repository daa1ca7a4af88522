/**
 * The permitted imports between packages and layers. scripts/check-lists.ts verifies that every pattern matches a file.
 */
export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'Files in a cycle can only be understood, loaded and tested together. Move shared code to a third file.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'imports-resolve',
      severity: 'error',
      comment:
        'Node.js would not find the file. Write the full path with its .ts extension. Programs of real clients are ' +
        'exempt, because they use packages that are installed outside the checkout.',
      from: { pathNot: '^e2e/clients/[^/]+/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'contract-is-only-data',
      severity: 'error',
      comment:
        'Web pages load the contract too, so it may import Zod and ipaddr.js, but not Node.js and no other package.',
      from: { path: '^packages/contract/src/', pathNot: '[.]test[.]ts$' },
      to: { pathNot: ['^packages/contract/src/', '^node_modules/(zod|ipaddr[.]js)/'] },
    },
    {
      name: 'runtime-knows-no-program',
      severity: 'error',
      comment: 'Server, agent and egress all use runtime. Code that only one of them needs belongs to that package.',
      from: { path: '^packages/runtime/src/' },
      to: { path: '^packages/', pathNot: '^packages/(runtime|contract)/src/' },
    },
    {
      name: 'dashboard-is-a-client',
      severity: 'error',
      comment: 'It runs in the browser of a viewer and knows berth by its endpoints alone.',
      from: { path: '^packages/dashboard/src/' },
      to: { path: '^packages/', pathNot: '^packages/(dashboard|contract)/src/' },
    },
    {
      name: 'programs-meet-on-the-wire',
      severity: 'error',
      comment:
        'Server, agent and egress are separate processes and are released separately. Declare an endpoint instead. The ' +
        'tools of MCP are a client of the API that the server and the command line both run.',
      from: { path: '^packages/(server|agent|egress)/src/', pathNot: '[.]test[.]ts$' },
      to: { path: '^packages/', pathNot: ['^packages/$1/', '^packages/(contract|runtime)/src/', '^packages/mcp/src/'] },
    },
    {
      name: 'cli-starts-and-examines-the-host',
      severity: 'error',
      comment:
        'serve, doctor and the operator commands run on the host itself: serve runs the server in this process, ' +
        "doctor runs the server's checks, and org and keys work without an API key. All other commands of the CLI " +
        'use the API, as any client does.',
      from: { path: '^packages/cli/src/' },
      to: {
        path: '^packages/',
        pathNot: [
          '^packages/cli/',
          '^packages/(contract|mcp)/src/',
          '^packages/server/src/((main|config|start-error)[.]ts$|host-checks/|administration/)',
        ],
      },
    },
    {
      name: 'mcp-is-a-client',
      severity: 'error',
      comment: 'A tool is a mapping onto the contract. Add what it needs to the API.',
      from: { path: '^packages/mcp/src/' },
      to: { path: '^packages/', pathNot: '^packages/(mcp|contract)/src/' },
    },
    {
      name: 'services-do-not-know-http',
      severity: 'error',
      comment: 'Jobs and other features call services too. Throw a BerthError instead of replying.',
      from: { path: '-service[.]ts$' },
      to: { path: ['^node_modules/fastify/', '-routes[.]ts$', '^packages/runtime/src/http/'] },
    },
    {
      name: 'routes-do-not-see-stores',
      severity: 'error',
      comment: 'A route translates between the wire and a service. Let a service read the store.',
      from: { path: '-routes[.]ts$' },
      to: { path: ['-store[.]ts$', '^packages/server/src/database/', '^node_modules/kysely/'] },
    },
    {
      name: 'features-meet-in-services',
      severity: 'error',
      comment: "Another feature's tables and routes are private. Use its service.",
      from: { path: '^packages/server/src/features/([^/]+)/' },
      to: {
        path: '^packages/server/src/features/',
        pathNot: ['^packages/server/src/features/$1/', '-(service|state|record)[.]ts$'],
      },
    },
    {
      name: 'only-wiring-names-a-driver',
      severity: 'error',
      comment:
        'All other code uses the capabilities of the Driver interface, so that sessions behave the same on every ' +
        'driver. Host checks examine what the local driver needs and use its code for that.',
      from: {
        path: '^packages/server/src/',
        pathNot: ['^packages/server/src/(services|main)[.]ts$', '^packages/server/src/(drivers|host-checks|testing)/'],
      },
      to: { path: '^packages/server/src/drivers/[^/]+/' },
    },
    {
      name: 'end-to-end-sees-the-outside',
      severity: 'error',
      comment:
        'End-to-end tests and the benchmark must work with any deployment: they know a base URL and a key, and no ' +
        'code of the packages.',
      from: { path: '^(e2e|bench)/' },
      to: { path: '^packages/' },
    },
    {
      name: 'tests-are-not-imported',
      severity: 'error',
      comment: 'Importing a test runs it. Move shared code to a testing folder.',
      from: {},
      to: { path: '[.]test[.]ts$' },
    },
    {
      name: 'product-without-testing',
      severity: 'error',
      comment: 'Code for tests must not become part of the product.',
      from: { path: '^packages/', pathNot: ['[.]test[.]ts$', '/testing/', '-suite[.]ts$'] },
      to: { path: ['/testing/', '-suite[.]ts$'] },
    },
  ],
  options: {
    doNotFollow: { path: '^node_modules/' },
    // Type imports count: a type couples two parts as much as a function does.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
}
