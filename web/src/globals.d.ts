/** True only in builds made with `--mode fixtures`; the shipped bundle has none of that code. */
declare const __FIXTURES__: boolean;

declare module "*.css";
