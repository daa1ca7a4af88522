import { z } from 'zod'

export const operationalCategories = ['control', 'connection', 'system', 'captcha'] as const
export const optionalCategories = ['console', 'network', 'page', 'interaction', 'screenshot', 'platform'] as const
export const telemetryCategories = [...operationalCategories, ...optionalCategories] as const

export const cdpCommandMethods = [
  'Input.dispatchMouseEvent',
  'Input.dispatchKeyEvent',
  'Input.insertText',
  'Input.imeSetComposition',
  'Input.dispatchTouchEvent',
  'Input.dispatchDragEvent',
  'Input.cancelDragging',
  'Input.emulateTouchFromMouseEvent',
  'Input.synthesizePinchGesture',
  'Input.synthesizeScrollGesture',
  'Input.synthesizeTapGesture',
  'DOM.setFileInputFiles',
  'DOM.focus',
  'DOM.scrollIntoViewIfNeeded',
  'Page.bringToFront',
  'Page.captureScreenshot',
  'Page.captureSnapshot',
  'Page.handleJavaScriptDialog',
  'Page.navigate',
  'Page.navigateToHistoryEntry',
  'Page.reload',
  'Page.printToPDF',
  'Page.startScreencast',
  'Page.stopScreencast',
  'Page.stopLoading',
  'Page.close',
  'Page.setWebLifecycleState',
  'Target.activateTarget',
  'Target.closeTarget',
  'Target.createTarget',
  'Target.createBrowserContext',
  'Target.disposeBrowserContext',
  'Target.openDevTools',
  'Browser.cancelDownload',
  'Browser.close',
  'Browser.setWindowBounds',
  'Browser.setContentsSize',
  'Autofill.trigger',
] as const

export const BrowserCdpCommandMethod = z.enum(cdpCommandMethods).meta({ id: 'BrowserCdpCommandMethod' })

const BrowserTelemetryCategoryConfig = z
  .object({ enabled: z.boolean().optional() })
  .meta({ id: 'BrowserTelemetryCategoryConfig' })

const BrowserTelemetryControlConfig = z
  .object({
    enabled: z.boolean().optional(),
    cdp: z.object({ excluded_methods: z.array(BrowserCdpCommandMethod).optional() }).optional(),
  })
  .meta({ id: 'BrowserTelemetryControlConfig' })

/** One entry per category. `control`, `connection`, `system` and `captcha` are on by default, the others off. */
export const BrowserTelemetryCategoriesConfig = z
  .object({
    control: BrowserTelemetryControlConfig.optional(),
    connection: BrowserTelemetryCategoryConfig.optional(),
    system: BrowserTelemetryCategoryConfig.optional(),
    captcha: BrowserTelemetryCategoryConfig.optional(),
    console: BrowserTelemetryCategoryConfig.optional(),
    network: BrowserTelemetryCategoryConfig.optional(),
    page: BrowserTelemetryCategoryConfig.optional(),
    interaction: BrowserTelemetryCategoryConfig.optional(),
    screenshot: BrowserTelemetryCategoryConfig.optional(),
    platform: BrowserTelemetryCategoryConfig.optional(),
  })
  .meta({ id: 'BrowserTelemetryCategoriesConfig' })
export type BrowserTelemetryCategoriesConfig = z.infer<typeof BrowserTelemetryCategoriesConfig>

const OTLPDestinationRef = z
  .object({ id: z.string().min(1).optional(), name: z.string().min(1).optional() })
  .refine((ref) => (ref.id === undefined) !== (ref.name === undefined), {
    error: 'must have exactly one of id and name',
  })
  .meta({ id: 'OTLPDestinationRef' })

const BrowserTelemetryExportRequestConfig = z
  .object({
    otlp: z
      .object({ destination: OTLPDestinationRef.optional(), enabled: z.boolean().optional() })
      .refine((otlp) => !(otlp.enabled === false && otlp.destination), {
        error: 'cannot name a destination while enabled is false',
      })
      .optional(),
  })
  .meta({ id: 'BrowserTelemetryExportRequestConfig' })

const BrowserTelemetryStorageRequestConfig = z
  .object({
    enabled: z
      .boolean()
      .default(true)
      .refine((enabled) => enabled, {
        path: [],
        error: 'cannot be false: captured telemetry is always stored',
      }),
  })
  .meta({ id: 'BrowserTelemetryStorageRequestConfig' })

/** The telemetry that a caller requests. */
export const BrowserTelemetryRequestConfig = z
  .object({
    enabled: z.boolean().optional(),
    browser: BrowserTelemetryCategoriesConfig.optional(),
    export: BrowserTelemetryExportRequestConfig.optional(),
    storage: BrowserTelemetryStorageRequestConfig.optional(),
  })
  .refine((request) => !(request.enabled === false && request.browser), {
    path: ['browser'],
    error: 'cannot be set while enabled is false',
  })
  .meta({ id: 'BrowserTelemetryRequestConfig' })
export type BrowserTelemetryRequestConfig = z.infer<typeof BrowserTelemetryRequestConfig>

/** The telemetry that a session captures. */
export const BrowserTelemetryConfig = z
  .object({
    browser: BrowserTelemetryCategoriesConfig,
    export: z
      .object({ otlp: z.object({ enabled: z.boolean(), destination: z.string().optional() }).optional() })
      .meta({ id: 'BrowserTelemetryExportConfig' })
      .optional(),
    storage: z.object({ enabled: z.boolean() }).meta({ id: 'BrowserTelemetryStorageConfig' }).optional(),
  })
  .meta({ id: 'BrowserTelemetryConfig' })
export type BrowserTelemetryConfig = z.infer<typeof BrowserTelemetryConfig>
