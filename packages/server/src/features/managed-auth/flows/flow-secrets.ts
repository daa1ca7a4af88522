import type { AuthFlowId, ProjectId } from '@berth/contract/common/ids.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import type { Answer } from './submission.ts'

/** What people entered, by the names under which it is stored, in the order of entry. */
export type Inputs = ReadonlyMap<string, string>

/** Encrypts the inputs of one flow. They are removed when the flow ends. */
export class FlowSecrets {
  readonly #secrets: ProjectSecrets

  constructor(secrets: ProjectSecrets) {
    this.#secrets = secrets
  }

  sealAnswer(projectId: ProjectId, id: AuthFlowId, answer: Answer): Promise<Buffer> {
    return this.#secrets.seal(projectId, JSON.stringify(answer), `answer of flow ${id}`)
  }

  async openAnswer(projectId: ProjectId, id: AuthFlowId, sealed: Buffer): Promise<Answer> {
    return JSON.parse(await this.#secrets.unseal(projectId, sealed, `answer of flow ${id}`))
  }

  sealInputs(projectId: ProjectId, id: AuthFlowId, inputs: Inputs): Promise<Buffer> {
    return this.#secrets.seal(projectId, JSON.stringify([...inputs]), `inputs of flow ${id}`)
  }

  async openInputs(projectId: ProjectId, { id, sealed_inputs: sealed }: SealedInputs): Promise<Inputs> {
    return new Map(sealed ? JSON.parse(await this.#secrets.unseal(projectId, sealed, `inputs of flow ${id}`)) : [])
  }

  sealCode(projectId: ProjectId, id: AuthFlowId, code: string): Promise<Buffer> {
    return this.#secrets.seal(projectId, code, `hand-off code of flow ${id}`)
  }

  openCode(projectId: ProjectId, id: AuthFlowId, sealed: Buffer): Promise<string> {
    return this.#secrets.unseal(projectId, sealed, `hand-off code of flow ${id}`)
  }
}

interface SealedInputs {
  readonly id: AuthFlowId
  readonly sealed_inputs: Buffer | null
}
