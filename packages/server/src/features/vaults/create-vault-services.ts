import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Database } from '../../database/database.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import { CollectionLinks } from './collection/collection-links.ts'
import { CollectionService } from './collection/collection-service.ts'
import { VaultKeys } from './encryption/vault-keys.ts'
import { EventStore } from './items/event-store.ts'
import { ItemChanges } from './items/item-changes.ts'
import { ItemSecrets } from './items/item-secrets.ts'
import { ItemService } from './items/item-service.ts'
import { ItemStore } from './items/item-store.ts'
import type { FindManagedLogin } from './items/managed-login.ts'
import { FillOperation } from './operations/fill-operation.ts'
import { ItemUse } from './operations/item-use.ts'
import type { LinkedSessions } from './operations/linked-sessions.ts'
import { OperationStore } from './operations/operation-store.ts'
import { WebMcpOperation } from './operations/webmcp-operation.ts'
import { ProviderConfigService } from './provider-configs/provider-config-service.ts'
import { ProviderConfigStore } from './provider-configs/provider-config-store.ts'
import { VaultService } from './vault-service.ts'
import { VaultStore } from './vault-store.ts'

interface VaultServicesOptions {
  readonly database: Database
  readonly secrets: ProjectSecrets
  readonly sessions: LinkedSessions
  readonly findManagedLogin: FindManagedLogin
  readonly clock: Clock
}

/** Creates and connects the services of vaults. */
export function createVaultServices({ database, secrets, sessions, findManagedLogin, clock }: VaultServicesOptions) {
  const keys = new VaultKeys(secrets)
  const vaults = new VaultService({ store: new VaultStore(database), keys, clock })
  const store = new ItemStore(database)
  const itemSecrets = new ItemSecrets(secrets)
  const operations = new OperationStore(database)
  const changes = new ItemChanges()
  const vaultItems = new ItemService({
    vaults,
    store,
    events: new EventStore(database),
    operations,
    secrets: itemSecrets,
    keys,
    links: new CollectionLinks(secrets),
    changes,
    findManagedLogin,
    clock,
  })
  const use = new ItemUse({ items: vaultItems, sessions, clock })
  return {
    vaults,
    vaultItems,
    vaultItemChanges: changes,
    vaultFills: new FillOperation({ use, operations, sessions, changes, clock }),
    vaultTools: new WebMcpOperation({ use, operations, sessions, changes, clock }),
    collections: new CollectionService({ store, secrets: itemSecrets, changes, clock }),
    vaultProviderConfigs: new ProviderConfigService({ store: new ProviderConfigStore(database), secrets, clock }),
  }
}
