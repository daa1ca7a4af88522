const {
  KUBECONFIG,
  BERTH_TEST_KUBERNETES,
  BERTH_TEST_KUBERNETES_IMAGE: image,
  BERTH_TEST_KUBERNETES_HOST,
} = process.env
const isInCluster = BERTH_TEST_KUBERNETES === '1' && image !== undefined

/** Makes a berth start its machines in the cluster of ./berth test --kubernetes. */
export const clusterEnvironment: Readonly<Record<string, string>> = isInCluster
  ? {
      ...(KUBECONFIG !== undefined && { KUBECONFIG }),
      BERTH_DRIVER: 'kubernetes',
      BERTH_KUBERNETES_IMAGE: image,
      BERTH_KUBERNETES_NAMESPACE: 'default',
      BERTH_KUBERNETES_CPU_REQUEST: '10m',
      // As much as sessions of tests use: a node of 16 GiB has no room for two headful ones with their limits.
      BERTH_KUBERNETES_MEMORY_REQUEST: '512Mi',
      BERTH_DRAIN_SECONDS: '0',
    }
  : {}

/** An address of this host that pods reach. Absent if sessions have machines on this host. */
export const clusterHost = isInCluster ? BERTH_TEST_KUBERNETES_HOST : undefined

/** For tests that look at the processes of a machine from this host. */
export const hostMachinesOnly: { readonly skip: string | false } = {
  skip: isInCluster && 'with machines on this host only: it looks at their processes, and those of pods are elsewhere',
}
