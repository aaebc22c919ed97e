import type { EN_PUSH } from "./words.push.ts";

/** Simplified Chinese for the notifications. */
export const ZH_PUSH: Record<keyof typeof EN_PUSH, string> = {
  "push.loading": "正在查看…",
  "push.unsupported": "此浏览器不支持网页通知。",
  "push.install":
    "在 iPhone 或 iPad 上，请先将此页面添加到主屏幕：点“共享”，再点“添加到主屏幕”，然后从主屏幕打开。",
  "push.insecure": "此页面通过普通 HTTP 打开，浏览器不允许通知。请用 HTTPS 打开。",
  "push.blocked": "此页面的通知已被阻止。请在浏览器的网站设置中允许，然后重新打开此页面。",
  "push.off": "此设备的通知已关闭。",
  "push.on": "此设备的通知已开启。",
  "push.lead":
    "当智能体需要您、无法继续，或运行超过 30 秒后完成，而您的设备都没有显示此页面时，会通知您。除非服务器设置允许，否则不发送消息内容。",
  "push.enable": "开启",
  "push.disable": "关闭",
  "push.test": "发送测试",
  "push.busy": "请稍候…",
  "push.no_worker": "页面还没准备好。请重新加载后再试。",
  "push.refused": "浏览器没有给出订阅。请稍后再试。",
  "push.failed": "没有成功：{message}",
  "push.delivered": "上一条：已送达，{when}。",
  "push.not_delivered": "上一条：未送达，{when}。{message}",
  "push.gone": "推送服务已不认识此设备。请重新开启通知。",
};
