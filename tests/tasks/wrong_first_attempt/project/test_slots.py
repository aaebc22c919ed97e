import unittest

from slots import Slots


class SlotsTest(unittest.TestCase):
    def test_the_lowest_first(self):
        slots = Slots(3)
        taken = [slots.take(), slots.take(), slots.take()]
        self.assertEqual(taken, [0, 1, 2])
        self.assertIsNone(slots.take())
        slots.give_back(2)
        slots.give_back(0)
        self.assertEqual([slots.take(), slots.take()], [0, 2])

    def test_giving_back_twice(self):
        slots = Slots(2)
        slots.take()
        slots.give_back(0)
        slots.give_back(0)
        self.assertEqual(slots.free, 2)

    def test_strange_slots_are_refused(self):
        slots = Slots(2)
        for slot in (-1, 2):
            with self.assertRaises(ValueError):
                slots.give_back(slot)


if __name__ == "__main__":
    unittest.main()
