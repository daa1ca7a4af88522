import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { exists } from '@berth/runtime/files/exists.ts'
import { defaultConnectionLimits } from '@berth/server/ingress/connection-limits.ts'

const run = promisify(execFile)
const checkout = join(import.meta.dirname, '../..')
const chart = join(checkout, 'deploy/helm/berth')
const cache = process.env.BERTH_KUBERNETES_CACHE ?? join(homedir(), '.cache/kube-1.37.2')
const helm = join(cache, 'helm')
const noHelm = (await exists(helm))
  ? undefined
  : `${helm} is missing: scripts/kubernetes/build-programs.sh ${cache} builds it from its Go module`

async function render(...flags: readonly string[]): Promise<string> {
  const kubernetes = ['--namespace', 'browsers', '--kube-version', '1.37.2']
  return (await run(helm, ['template', 'berth', chart, ...kubernetes, ...flags])).stdout
}

function valuesFile(name: string): readonly string[] {
  return ['--values', join(chart, 'ci', `${name}.yaml`)]
}

function kindsOf(manifests: string): readonly string[] {
  return [...manifests.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind ?? '').toSorted()
}

/** The document of a kind whose name ends with the given text. */
function documentOf(manifests: string, kind: string, name: string): string {
  const isWanted = (text: string) =>
    text.includes(`\nkind: ${kind}\n`) && new RegExp(`^  name: ${name}$`, 'm').test(text)
  return manifests.split('\n---\n').find(isWanted) ?? assert.fail(`no ${kind} ${name}`)
}

const always = [
  ...['ConfigMap', 'ConfigMap', 'DaemonSet', 'Deployment', 'NetworkPolicy', 'NetworkPolicy', 'PodDisruptionBudget'],
  ...['Role', 'RoleBinding', 'Service', 'ServiceAccount'],
]

describe('the chart', { skip: noHelm ?? false }, () => {
  for (const name of ['minimal', 'full']) {
    it(`passes helm lint with the values of ${name}`, async () => {
      await run(helm, ['lint', '--strict', '--kube-version', '1.37.2', chart, ...valuesFile(name)])
    })
  }

  it('creates only what a server and its machines need by default', async () => {
    assert.deepEqual(kindsOf(await render(...valuesFile('minimal'))), always)
  })

  it('adds optional parts', async () => {
    const added = ['ConfigMap', 'HTTPRoute', 'HorizontalPodAutoscaler', 'Ingress', 'ResourceQuota', 'ServiceMonitor']
    // The user brings a profile, which the chart does not copy to nodes.
    const copied = ['ConfigMap', 'DaemonSet']
    const expected = [...always, ...added].toSorted()
    for (const kind of copied) expected.splice(expected.indexOf(kind), 1)
    assert.deepEqual(kindsOf(await render(...valuesFile('full'))), expected)
  })

  it('gives a single server without a bucket a volume, and stops it before the next one starts', async () => {
    const manifests = await render('--set', 'existingSecret=berth')

    assert.ok(kindsOf(manifests).includes('PersistentVolumeClaim'))
    assert.match(documentOf(manifests, 'Deployment', 'berth'), /type: Recreate/)
    assert.doesNotMatch(manifests, /BERTH_SERVER_ADDRESS/)
  })

  it('lets servers with a bucket know each other, and replaces them one at a time', async () => {
    const flags = ['--set', 'existingSecret=berth,blobs.bucket=profiles,server.replicas=3']
    const manifests = await render(...flags)

    assert.ok(!kindsOf(manifests).includes('PersistentVolumeClaim'))
    const deployment = documentOf(manifests, 'Deployment', 'berth')
    assert.match(deployment, /replicas: 3\n/)
    assert.match(deployment, /rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }/)
    assert.match(deployment, /BERTH_SERVER_ADDRESS, value: "http:\/\/\$\(POD_IP\):8080"/)
  })

  it('uses the address of an Ingress with TLS as its public address, unless another is set', async () => {
    const ingress = 'existingSecret=berth,ingress.enabled=true,ingress.host=berth.example.com'
    const publicUrl = async (...flags: readonly string[]) =>
      /BERTH_PUBLIC_URL, value: "(.+)"/.exec(await render('--set', ingress, ...flags))?.[1]

    assert.equal(await publicUrl(), undefined)
    assert.equal(await publicUrl('--set', 'ingress.tlsSecretName=tls'), 'https://berth.example.com')
    const flags = ['--set', 'ingress.tlsSecretName=tls,publicUrl=https://public.example.com']
    assert.equal(await publicUrl(...flags), 'https://public.example.com')
  })

  it('lets a proxy, through which all clients connect, have as many connections as all clients together', async () => {
    const gateway = 'existingSecret=berth,gateway.enabled=true,gateway.name=public,gateway.host=berth.example.com'
    const limits = async (...flags: readonly string[]) =>
      [...(await render(...flags)).matchAll(/BERTH_MAX_CONNECTIONS_PER_ADDRESS, value: "(\d+)"/g)].map(
        ([, limit]) => limit,
      )

    assert.deepEqual(await limits('--set', 'existingSecret=berth'), [])
    assert.deepEqual(await limits('--set', gateway), [`${defaultConnectionLimits.total}`])
    assert.deepEqual(await limits('--set', `${gateway},server.env.BERTH_MAX_CONNECTIONS=20000`), ['20000'])
    assert.deepEqual(await limits('--set', `${gateway},server.env.BERTH_MAX_CONNECTIONS_PER_ADDRESS=7`), ['7'])
  })

  it('scales by the metrics of the example for prometheus-adapter', async () => {
    const scaler = documentOf(await render(...valuesFile('full')), 'HorizontalPodAutoscaler', 'berth')
    const adapter = await readFile(join(chart, 'examples/prometheus-adapter.yaml'), 'utf8')
    const source = await readFile(join(checkout, 'packages/server/src/features/service/metrics.ts'), 'utf8')

    const wanted = [...scaler.matchAll(/name: (berth_\w+)/g)].map(([, name]) => name)
    const made = [...adapter.matchAll(/name: { as: (\w+) }/g)].map(([, name]) => name)
    assert.deepEqual(wanted, made)
    for (const [, series = ''] of adapter.matchAll(/seriesQuery: (\w+)/g)) {
      assert.ok(source.includes(`'${series}'`), series)
    }
    const deployment = documentOf(await render(...valuesFile('full')), 'Deployment', 'berth')
    assert.doesNotMatch(deployment, /^ {2}replicas:/m)
  })

  it('names the seccomp profile by its content, in the pods and in the copy on the nodes', async () => {
    const manifests = await render(...valuesFile('minimal'))

    const [, profile] =
      /BERTH_KUBERNETES_SECCOMP_PROFILE, value: "(berth\/machine-[0-9a-f]{12}\.json)"/.exec(manifests) ?? []
    assert.ok(profile)
    assert.ok(documentOf(manifests, 'DaemonSet', 'berth-seccomp').includes(`target=/profiles/${profile}\n`))
  })

  it('lets only servers connect to machines, and machines not to private networks', async () => {
    const policy = documentOf(await render(...valuesFile('minimal')), 'NetworkPolicy', 'berth-machines')
    assert.match(policy, /matchLabels: { app.kubernetes.io\/name: berth-machine }/)
    assert.match(policy, /app.kubernetes.io\/name: berth-server\n.*\n +ports: \[{ protocol: TCP, port: 8443 }\]/)
    for (const network of ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']) {
      assert.ok(policy.includes(`- ${network}\n`), network)
    }
  })

  it('grants a server access only to its machines and their secrets', async () => {
    const role = documentOf(await render(...valuesFile('minimal')), 'Role', 'berth')
    const granted = [...role.matchAll(/resources: \[([^\]]+)\].*verbs: \[([^\]]+)\]/g)].map(([, what, verbs]) => [
      what,
      verbs,
    ])
    assert.deepEqual(granted, [
      ['pods', 'create, get, list, watch, delete'],
      ['pods/log', 'get'],
      ['pods/resize', 'patch'],
      ['secrets', 'create, get, list, patch, delete'],
      ['configmaps', 'get'],
    ])
  })

  for (const { what, flags, message } of [
    { what: 'no database', flags: [], message: /set existingSecret/ },
    { what: 'an unknown value', flags: ['--set', 'existingSecret=berth,serverr.logLevel=info'], message: /serverr/ },
    {
      what: 'several servers without a bucket',
      flags: ['--set', 'existingSecret=berth,server.replicas=2'],
      message: /several servers need blobs.bucket/,
    },
    { what: 'an unknown log level', flags: ['--set', 'server.logLevel=loud'], message: /logLevel/ },
    {
      what: 'a wait longer than that of a start',
      flags: ['--set', 'machines.pendingSeconds=41'],
      message: /pendingSeconds/,
    },
    {
      what: 'an ingress without a host',
      flags: ['--set', 'existingSecret=berth,ingress.enabled=true'],
      message: /ingress.host/,
    },
  ]) {
    it(`refuses ${what}`, async () => {
      await assert.rejects(render(...flags), ({ stderr }: { stderr: string }) => message.test(stderr))
    })
  }
})

describe('the dashboard of Grafana', () => {
  it('shows only metrics that berth exports', async () => {
    const dashboard = await readFile(join(chart, 'dashboards/berth.json'), 'utf8')
    const source = await readFile(join(checkout, 'packages/server/src/features/service/metrics.ts'), 'utf8')
    const exported = new Set([...source.matchAll(/name: '(berth_\w+)'/g)].map(([, name]) => name ?? ''))
    const shown = [...dashboard.matchAll(/\bberth_\w+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, ''))
    assert.ok(shown.length > 10)
    assert.deepEqual(
      shown.filter((name) => !exported.has(name)),
      [],
    )
  })
})
