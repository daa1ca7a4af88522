import { operations } from './agent/operations.ts'
import { createBrowser, deleteBrowser, getBrowser, listBrowsers, updateBrowser } from './browsers/browser-endpoints.ts'
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
import {
  createProfile,
  deleteProfile,
  downloadProfile,
  getProfile,
  listProfiles,
  updateProfile,
} from './profiles/profile-endpoints.ts'
import { checkProxy, createProxy, deleteProxy, getProxy, listProxies, updateProxy } from './proxies/proxy-endpoints.ts'
import { getHealth, getStatus } from './service/service-endpoints.ts'

/** Every public operation that berth serves, in the order of the API document. */
export const publicEndpoints: readonly Endpoint[] = [
  createBrowser,
  listBrowsers,
  getBrowser,
  updateBrowser,
  deleteBrowser,
  ...operations.filter(({ isPassage }) => !isPassage),
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
  getHealth,
  getStatus,
] as unknown as readonly Endpoint[]
