import {
  createVaultProviderConfig,
  VaultProviderConfigCreateRequest,
} from '@berth/contract/vaults/provider-config-endpoints.ts'
import { call } from '../../api/client.ts'
import { actions } from '../../strings/lists.ts'
import type { OtherCreate } from './resource.ts'

const [LinkRequest, AgentcardRequest] = VaultProviderConfigCreateRequest.options
const LinkForm = LinkRequest.omit({ provider: true })
const AgentcardForm = AgentcardRequest.omit({ provider: true })

/** A form per provider, because each has different credentials. */
export const newProviderConfigs: readonly OtherCreate[] = [
  {
    label: actions.newLinkConfig,
    schema: LinkForm,
    make: (value: object) => create({ provider: 'link', ...value }),
  },
  {
    label: actions.newAgentcardConfig,
    schema: AgentcardForm,
    make: (value: object) => create({ provider: 'agentcard', ...value }),
  },
]

const create = (body: object) => call(createVaultProviderConfig, { body: body as VaultProviderConfigCreateRequest })
