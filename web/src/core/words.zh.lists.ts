import { EN_CODE } from "./words.code.ts";
import { EN_DEVICE } from "./words.device.ts";
import { EN } from "./words.en.ts";
import { EN_LATER } from "./words.later.ts";
import { EN_PUSH } from "./words.push.ts";
import { EN_SETTINGS } from "./words.settings.ts";
import { ZH } from "./words.zh.ts";

export { SAID } from "./words.zh.said.ts";

const listOf = (words: object): string[] =>
  (Object.keys(words) as (keyof typeof ZH)[]).map((word) => ZH[word]);

/**
 * Chinese, for each book the texts in the order of the English ones.
 *
 * The build ships what comes of this, so that the names of all texts go over the wire only once.
 */
export const LISTS = {
  first: listOf(EN),
  later: listOf(EN_LATER),
  push: listOf(EN_PUSH),
  device: listOf(EN_DEVICE),
  settings: listOf(EN_SETTINGS),
  code: listOf(EN_CODE),
};
