/** Files on their way to the server. */

import { t } from "../core/i18n.ts";
import { readAs } from "../protocol/events.ts";
import { CONTRACT_HEADER, CONTRACT_VERSION, type FileInfo } from "../protocol/types.gen.ts";
import { ApiFault, addressOf, checkAnswer, learn, makeForeign } from "./api.ts";

/** The most bytes of one file that a server keeps. */
export const MAX_BYTES = 20 * 1024 * 1024;

/**
 * Keeps a file at the server; the same bytes again are the same file.
 *
 * @throws ApiFault when it was not taken
 */
export async function uploadFile(file: Blob, name: string, signal: AbortSignal): Promise<FileInfo> {
  try {
    await learn();
    const response = await fetch(addressOf("upload_file", {}, { name }), {
      method: "POST",
      headers: {
        accept: "application/json",
        "content-type": file.type || "application/octet-stream",
        [CONTRACT_HEADER]: CONTRACT_VERSION,
      },
      credentials: "same-origin",
      body: file,
      signal,
    });
    await checkAnswer(response);
    const answer = readAs<FileInfo>("FileInfo", await response.json().catch(() => undefined));
    if (!answer) throw makeForeign("contract_unavailable", response.status);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiFault) throw error;
    throw new ApiFault("network", t("error.network"), { again: true });
  }
}
