import { operations } from './agent/operations.ts'
import {
  createApiKey,
  deleteApiKey,
  getApiKey,
  listApiKeys,
  rotateApiKey,
  updateApiKey,
} from './api-keys/api-key-endpoints.ts'
import { exportAuditLogChunk, listAuditLogs } from './audit/audit-endpoints.ts'
import {
  createExportDestination,
  deleteExportDestination,
  getExportDestination,
  listExportDestinations,
  testExportDestination,
  updateExportDestination,
} from './audit/export-destination-endpoints.ts'
import { getAuthContext } from './auth/auth-endpoints.ts'
import { createBrowser, deleteBrowser, getBrowser, listBrowsers, updateBrowser } from './browsers/browser-endpoints.ts'
import {
  cancelAnalysis,
  getAnalysis,
  listAnalyses,
  listRecommendations,
  lookUpConfiguration,
  resolveConfiguration,
} from './config-registry/config-registry-endpoints.ts'
import {
  createCredentialProvider,
  deleteCredentialProvider,
  getCredentialProvider,
  listCredentialProviderItems,
  listCredentialProviders,
  testCredentialProvider,
  updateCredentialProvider,
} from './credential-providers/credential-provider-endpoints.ts'
import {
  createCredential,
  deleteCredential,
  getCredential,
  getTotpCode,
  listCredentials,
  updateCredential,
} from './credentials/credential-endpoints.ts'
import { getDownload, listDownloads } from './downloads/download-endpoints.ts'
import type { Endpoint } from './endpoint.ts'
import {
  deleteExtension,
  downloadExtension,
  downloadFromChromeStore,
  getExtension,
  listExtensions,
  loadExtensions,
  uploadExtension,
} from './extensions/extension-endpoints.ts'
import { getOrgEntitlements, getOrgLimits, updateOrgLimits } from './organizations/organization-endpoints.ts'
import {
  createProfile,
  deleteProfile,
  downloadProfile,
  getProfile,
  listProfiles,
  updateProfile,
} from './profiles/profile-endpoints.ts'
import { legacyAlias } from './projects/legacy-alias.ts'
import {
  createProject,
  deleteProject,
  getProject,
  getProjectLimits,
  listProjects,
  updateProject,
  updateProjectLimits,
} from './projects/project-endpoints.ts'
import { checkProxy, createProxy, deleteProxy, getProxy, listProxies, updateProxy } from './proxies/proxy-endpoints.ts'
import { downloadReplay, listReplays, startReplay, stopReplay } from './replays/replay-endpoints.ts'
import { createSearch, fetchSearchContents, getSearch, listSearchProviders } from './search/search-endpoints.ts'
import { getHealth, getStatus } from './service/service-endpoints.ts'

const projectEndpoints = [
  createProject,
  listProjects,
  getProject,
  updateProject,
  deleteProject,
  getProjectLimits,
  updateProjectLimits,
] as unknown as readonly Endpoint[]

/** Every public operation of berth, in the order of the API document. */
export const publicEndpoints: readonly Endpoint[] = [
  createBrowser,
  listBrowsers,
  getBrowser,
  updateBrowser,
  deleteBrowser,
  ...operations.filter(({ isPassThrough }) => !isPassThrough),
  listDownloads,
  getDownload,
  startReplay,
  listReplays,
  downloadReplay,
  stopReplay,
  createProfile,
  listProfiles,
  getProfile,
  updateProfile,
  deleteProfile,
  downloadProfile,
  loadExtensions,
  uploadExtension,
  listExtensions,
  downloadFromChromeStore,
  downloadExtension,
  getExtension,
  deleteExtension,
  createProxy,
  listProxies,
  getProxy,
  updateProxy,
  deleteProxy,
  checkProxy,
  createCredential,
  listCredentials,
  getCredential,
  updateCredential,
  deleteCredential,
  getTotpCode,
  createCredentialProvider,
  listCredentialProviders,
  getCredentialProvider,
  updateCredentialProvider,
  deleteCredentialProvider,
  testCredentialProvider,
  listCredentialProviderItems,
  createSearch,
  listSearchProviders,
  getSearch,
  fetchSearchContents,
  ...projectEndpoints,
  ...projectEndpoints.map(legacyAlias),
  createApiKey,
  listApiKeys,
  getApiKey,
  updateApiKey,
  deleteApiKey,
  rotateApiKey,
  listAuditLogs,
  exportAuditLogChunk,
  createExportDestination,
  listExportDestinations,
  getExportDestination,
  updateExportDestination,
  deleteExportDestination,
  testExportDestination,
  getOrgLimits,
  updateOrgLimits,
  getOrgEntitlements,
  listRecommendations,
  lookUpConfiguration,
  resolveConfiguration,
  listAnalyses,
  getAnalysis,
  cancelAnalysis,
  getAuthContext,
  getHealth,
  getStatus,
] as unknown as readonly Endpoint[]
