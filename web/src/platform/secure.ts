/** Whether browsers trust this page with what they hold back over plain HTTP. */
export const isSecure = globalThis.isSecureContext !== false;
