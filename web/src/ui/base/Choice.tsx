interface ChoiceProps<Id extends string> {
  label: string;
  name: string;
  options: readonly (readonly [id: Id, text: string])[];
  chosen: Id;
  onChoose: (id: Id) => void;
}

/** One of a few, side by side. */
export function Choice<Id extends string>(props: ChoiceProps<Id>) {
  const { label, name, options, chosen, onChoose } = props;
  return (
    <fieldset class="choice">
      <legend class="label">{label}</legend>
      <div class="segments">
        {options.map(([id, text]) => (
          <label key={id} class="segment">
            <input type="radio" name={name} checked={id === chosen} onChange={() => onChoose(id)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
