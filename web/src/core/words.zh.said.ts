/** Chinese for what the server says in English, by its reason, code or own words. */
export const SAID: Readonly<Record<string, string>> = {
  "said.folder_gone": "此会话的文件夹已不存在。请恢复它，或在其他文件夹开始新会话。",
  "said.configured": "服务器的设置已指定新会话的模型。请在 config.toml 中修改或删除 model。",
  "said.resumed_too_often": "这一轮多次因重启中断，已放弃。请查看它做了什么，再发送一次。",
  "said.internal_error": "towline 内部出错，详情见服务器日志。请再发送一次。",
  "said.provider_server": "模型服务商出错，请稍后再试。",
  "said.provider_unavailable": "联系不上模型。请检查网络或地址，再试一次。",
  "said.provider_rate_limit": "模型服务商限制了请求频率，请稍后再试。",
  "said.provider_quota": "模型的额度已用完。请充值，或换一个模型。",
  "said.provider_auth": "密钥缺失或无效。请在“设置 · 模型与密钥”中修改。",
  "said.provider_model_not_found": "服务商没有这个模型，请换一个。",
  "said.provider_endpoint_not_found": "此地址没有模型服务，请检查服务商的地址。",
  "said.provider_context_overflow": "对话超出了模型的上下文，请用 /compact 压缩。",
  "said.Tell me what is in this folder and how it hangs together.":
    "说说这个文件夹里有什么、如何组织。",
  "said.Run the tests and tell me what fails, and why.": "运行测试，告诉我哪些失败、为什么。",
  "said./init": "/init：为此项目写一份 AGENTS.md",
  "said.What has changed since the last commit?": "上次提交之后改了什么？",
  "said.Find something small that is broken, and mend it.": "找一个小毛病，把它修好。",
  "said.Begin a small Python project here, with a test.": "在这里建一个带测试的小 Python 项目。",
};
