import type { EN_SETTINGS } from "./words.settings.ts";

/** Simplified Chinese for the settings. */
export const ZH_SETTINGS: Record<keyof typeof EN_SETTINGS, string> = {
  "set.all": "全部设置",
  "set.list": "设置分类",
  "set.user": "当前用户：{user}。",
  "set.look": "外观与输入",
  "set.look.lead": "主题、字号、语言、回车键",
  "set.push": "通知",
  "set.push.lead": "智能体需要你而你不在看时",
};
