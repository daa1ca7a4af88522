import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { V1Pod, V1PodStatus } from '@kubernetes/client-node'
import { type PodState, podState } from './pod-state.ts'

const container = (state: object) => [{ name: 'machine', image: '', imageID: '', ready: false, restartCount: 0, state }]
const ended = (reason: string, isLackOfRoom = false): PodState => ({ state: 'ended', reason, isLackOfRoom })

const cases: readonly [name: string, status: V1PodStatus, state: PodState, metadata?: V1Pod['metadata']][] = [
  ['a new pod', { phase: 'Pending' }, { state: 'starting' }],
  [
    'no node has room',
    {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes: cpu' }],
    },
    { state: 'pending', reason: '0/1 nodes: cpu' },
  ],
  [
    'it runs',
    { phase: 'Running', podIP: '10.0.0.1', containerStatuses: container({ running: {} }) },
    { state: 'running' },
  ],
  ['no address yet', { phase: 'Pending', containerStatuses: container({ running: {} }) }, { state: 'starting' }],
  [
    'its image cannot be pulled',
    {
      phase: 'Pending',
      containerStatuses: container({ waiting: { reason: 'ErrImagePull', message: 'not found' } }),
    },
    ended('ErrImagePull: not found'),
  ],
  [
    'egress does not start',
    {
      phase: 'Pending',
      initContainerStatuses: container({ waiting: { reason: 'CreateContainerError', message: 'no user' } }),
    },
    ended('CreateContainerError: no user'),
  ],
  [
    'out of memory',
    { phase: 'Running', containerStatuses: container({ terminated: { reason: 'OOMKilled', exitCode: 137 } }) },
    ended('OOMKilled: it reached its memory limit'),
  ],
  [
    'its first process has ended',
    { phase: 'Failed', containerStatuses: container({ terminated: { reason: 'Error', exitCode: 1 } }) },
    ended('Error: its first process ended with 1'),
  ],
  ['evicted', { phase: 'Failed', reason: 'Evicted', message: 'low on memory' }, ended('Evicted: low on memory', true)],
  ['refused by the node', { phase: 'Failed', reason: 'OutOfcpu', message: 'no cpu' }, ended('OutOfcpu: no cpu', true)],
  [
    'its node is lost',
    {
      phase: 'Running',
      podIP: '10.0.0.1',
      containerStatuses: container({ running: {} }),
      conditions: [
        { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message: 'unreachable' },
      ],
    },
    ended('DeletionByTaintManager: unreachable'),
    { deletionTimestamp: new Date(0) },
  ],
  [
    'deleted by somebody else',
    { phase: 'Running', podIP: '10.0.0.1', containerStatuses: container({ running: {} }) },
    ended('its pod was deleted'),
    { deletionTimestamp: new Date(0) },
  ],
]

for (const [name, status, expected, metadata = {}] of cases) {
  test(`a pod where ${name}`, () => {
    assert.deepEqual(podState({ metadata, status }), expected)
  })
}
