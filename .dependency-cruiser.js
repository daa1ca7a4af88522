/**
 * The permitted imports between packages and layers. scripts/check-lists.ts verifies that every pattern matches a file.
 */
export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'Files in a cycle can only be understood, loaded and tested together. Move what both need to a third.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'imports-resolve',
      severity: 'error',
      comment:
        'Node.js would not find the file. Write the whole path, with its .ts ending. (Programs of real clients run ' +
        'beside packages that are installed outside of the checkout.)',
      from: { pathNot: '^e2e/clients/[^/]+/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'contract-is-only-data',
      severity: 'error',
      comment: 'A web page loads the contract too: it may need Zod and addresses, but no Node.js and nothing of ours.',
      from: { path: '^packages/contract/src/', pathNot: '[.]test[.]ts$' },
      to: { pathNot: ['^packages/contract/src/', '^node_modules/(zod|ipaddr[.]js)/'] },
    },
    {
      name: 'runtime-knows-no-program',
      severity: 'error',
      comment: 'Server, agent and egress all stand on runtime. What only one of them needs belongs there.',
      from: { path: '^packages/runtime/src/' },
      to: { path: '^packages/', pathNot: '^packages/(runtime|contract)/src/' },
    },
    {
      name: 'programs-meet-on-the-wire',
      severity: 'error',
      comment:
        'Server, agent and egress are processes of their own and are released apart. Declare an endpoint instead.',
      from: { path: '^packages/(server|agent|egress)/src/', pathNot: '[.]test[.]ts$' },
      to: { path: '^packages/', pathNot: ['^packages/$1/', '^packages/(contract|runtime)/src/'] },
    },
    {
      name: 'cli-starts-and-examines-the-host',
      severity: 'error',
      comment:
        'serve, doctor and the commands of the operator run on the host itself: serve is the server in this very ' +
        "process, doctor makes the server's own checks, org and keys work without an API key. Everything else the CLI asks for over the API, as any client does.",
      from: { path: '^packages/cli/src/' },
      to: {
        path: '^packages/',
        pathNot: [
          '^packages/(cli|contract)/src/',
          '^packages/server/src/((main|config|start-error)[.]ts$|host-checks/|administration/)',
        ],
      },
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
      comment:
        'A route translates between the wire and a service. What it reads from a store, a service should decide.',
      from: { path: '-routes[.]ts$' },
      to: { path: ['-store[.]ts$', '^packages/server/src/database/', '^node_modules/kysely/'] },
    },
    {
      name: 'features-meet-in-services',
      severity: 'error',
      comment: "Another feature's tables and routes are its own business. Ask its service.",
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
        'Everybody else asks the Driver interface for a capability, so that sessions run the same on every kind. ' +
        'The checks of a host examine what the local driver will need there, by its own means.',
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
        'End-to-end tests and the bench must be able to try any deployment: they know a base URL and a key, and no ' +
        'code of ours.',
      from: { path: '^(e2e|bench)/' },
      to: { path: '^packages/' },
    },
    {
      name: 'tests-are-not-imported',
      severity: 'error',
      comment: 'Importing a test runs it. Put what tests share into a testing folder.',
      from: {},
      to: { path: '[.]test[.]ts$' },
    },
    {
      name: 'product-without-testing',
      severity: 'error',
      comment: 'What only tests need must not become part of the product.',
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
