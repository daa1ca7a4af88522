/* The types of telemetry events. Without schemas, because the agent loads this file. */

/** Each type of event with its category. */
export const eventCategories = {
  api_call: 'control',
  cdp_command: 'control',
  cdp_connect: 'connection',
  cdp_disconnect: 'connection',
  live_view_connect: 'connection',
  live_view_disconnect: 'connection',
  system_oom_kill: 'system',
  service_crashed: 'system',
  captcha_solve_started: 'captcha',
  captcha_solve_result: 'captcha',
  captcha_challenge_result: 'captcha',
  console_log: 'console',
  console_error: 'console',
  network_request: 'network',
  network_response: 'network',
  network_loading_failed: 'network',
  network_idle: 'network',
  proxy_error: 'network',
  page_navigation: 'page',
  page_dom_content_loaded: 'page',
  page_load: 'page',
  page_tab_opened: 'page',
  page_crashed: 'page',
  page_layout_shift: 'page',
  page_lcp: 'page',
  page_layout_settled: 'page',
  page_navigation_settled: 'page',
  interaction_click: 'interaction',
  interaction_key: 'interaction',
  interaction_scroll_settled: 'interaction',
  monitor_screenshot: 'screenshot',
  platform_api_call: 'platform',
  monitor_disconnected: 'monitor',
  monitor_reconnected: 'monitor',
  monitor_reconnect_failed: 'monitor',
  monitor_init_failed: 'monitor',
  /** An addition of berth: events that were lost before they could be stored. */
  monitor_events_lost: 'monitor',
} as const

export type TelemetryEventType = keyof typeof eventCategories
export type EventCategory = (typeof eventCategories)[TelemetryEventType]

/** While one of these is captured, events of `monitor` report whether pages are observed. */
export const observedCategories = ['console', 'network', 'page', 'interaction'] as const
