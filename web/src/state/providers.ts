/** Models, their providers and the keys of these, as the server tells them. */

import { signal } from "@preact/signals";
import { ApiFault, call } from "../platform/api.ts";
import type {
  ChangeProvider,
  FinishSignIn,
  ModelList,
  ProviderInfo,
  ProviderTest,
  SignInStarted,
  StartSignIn,
} from "../protocol/types.gen.ts";
import { signOut } from "./account.ts";

/** How something that is asked of the server stands. */
export type Load<T> =
  | { state: "loading" }
  | { state: "failed"; code: string; message: string }
  | { state: "ready"; value: T };

/** What came of a request; who is signed out is led to the gate. */
export async function loadOf<T>(request: Promise<T>): Promise<Load<T>> {
  try {
    return { state: "ready", value: await request };
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (error.code === "unauthorized") signOut(true);
    return { state: "failed", code: error.code, message: error.message };
  }
}

/** The providers; only an admin may see them. */
export const providers = signal<Load<readonly ProviderInfo[]>>({ state: "loading" });
/** The models that can be asked. */
export const models = signal<Load<ModelList>>({ state: "loading" });

/** Reads the models again. */
export async function loadModels(): Promise<void> {
  models.value = await loadOf(call("list_models"));
}

/** Reads both again. */
export async function loadProviders(): Promise<void> {
  const rows = loadOf(call("list_providers").then((list) => list.providers));
  await Promise.all([
    loadModels(),
    rows.then((list) => {
      providers.value = list;
    }),
  ]);
}

/** Chooses the model of new chats for all devices; tells why not when it was not done. */
export async function chooseDefault(model: string | null): Promise<string | null> {
  const done = await loadOf(call("set_default_model", { body: { model } }));
  // Whatever came of it, the list says how it is now.
  await loadModels();
  return done.state === "failed" ? done.message : null;
}

function put(row: ProviderInfo): void {
  const known = providers.peek();
  if (known.state !== "ready") return;
  const value = known.value.map((other) => (other.provider === row.provider ? row : other));
  providers.value = { state: "ready", value };
}

/** Changes how a provider is reached; tells why not when it was not done. */
export async function changeProvider(
  provider: string,
  body: ChangeProvider,
): Promise<string | null> {
  return putOr(call("change_provider", { path: { provider }, body }));
}

/** Forgets all that is kept for a provider; tells why not when it was not done. */
export async function removeProvider(provider: string): Promise<string | null> {
  return putOr(call("remove_provider", { path: { provider } }));
}

/** Begins a sign-in. */
export async function startSignIn(
  provider: string,
  body: StartSignIn,
): Promise<Load<SignInStarted>> {
  return loadOf(call("start_sign_in", { path: { provider }, body }));
}

/** Ends one with where the browser ended; tells why not when it was not done. */
export async function finishSignIn(provider: string, body: FinishSignIn): Promise<string | null> {
  return putOr(call("finish_sign_in", { path: { provider }, body }));
}

async function putOr(request: Promise<ProviderInfo>): Promise<string | null> {
  const done = await loadOf(request);
  if (done.state !== "ready") return done.state === "failed" ? done.message : null;
  put(done.value);
  void loadModels();
  return null;
}

/** Asks a provider with each of its keys. */
export async function testProvider(provider: string): Promise<Load<ProviderTest>> {
  return loadOf(call("test_provider", { path: { provider } }));
}
