import { type ComponentType, h, render } from "preact";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import { FakeServer } from "./fake_server.ts";

/** One section of the settings on a page of its own. */
export class SettingsScreen {
  readonly server = new FakeServer();
  readonly place = document.createElement("div");

  constructor() {
    document.body.append(this.place);
  }

  async settle(ms = 50): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }

  async show(Section: ComponentType<object>): Promise<void> {
    render(h(Section, {}), this.place);
    await this.settle();
  }

  get text(): string {
    return this.place.textContent ?? "";
  }

  find<T extends Element>(selector: string): T {
    const found = this.place.querySelector<T>(selector);
    expect(found, selector).not.toBeNull();
    return found as T;
  }

  async press(name: string): Promise<void> {
    const found = [...this.place.querySelectorAll("button")].find(
      (one) => one.textContent?.trim() === name || one.getAttribute("aria-label") === name,
    );
    expect(found, `a button ${name}`).toBeDefined();
    found?.click();
    await this.settle();
  }

  async type(selector: string, text: string): Promise<void> {
    const field = this.find<HTMLInputElement>(selector);
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await this.settle();
  }

  async choose(selector: string, value?: string): Promise<void> {
    const field = this.find<HTMLInputElement | HTMLSelectElement>(selector);
    if (value === undefined) field.click();
    else {
      field.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    await this.settle();
  }

  /** Unfolds what a browser unfolds by a click on its summary. */
  async unfold(at = 0): Promise<void> {
    const found = this.place.querySelectorAll("details")[at] as HTMLDetailsElement;
    found.open = true;
    found.dispatchEvent(new Event("toggle"));
    await this.settle();
  }

  async submit(selector: string): Promise<void> {
    this.find(selector).dispatchEvent(new Event("submit", { cancelable: true, bubbles: true }));
    await this.settle();
  }
}

/** A new screen for each test of the file. */
export function useSettingsScreen(): { readonly screen: SettingsScreen } {
  const holder = {} as { screen: SettingsScreen };
  beforeEach(async () => {
    await learn();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    localStorage.clear();
    holder.screen = new SettingsScreen();
  });
  afterEach(() => {
    render(null, holder.screen.place);
    holder.screen.place.remove();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  return holder;
}
