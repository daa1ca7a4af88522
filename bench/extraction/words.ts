/** Pseudo-random numbers that are the same in every run. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed + 0x9e3779b9
  }

  /** From 0 to below the limit. */
  below(limit: number): number {
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
    return ((this.#state ^ (this.#state >>> 13)) >>> 0) % limit
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }
}

export type Language = 'en' | 'de' | 'ar' | 'he' | 'fa'

const vocabularies: Readonly<Record<Language, readonly string[]>> = {
  en: (
    'the harbour council decided that a second bridge would open before winter although engineers had warned about costs and ' +
    'residents along river streets asked for quieter nights while trains carried grain coal timber machines towards northern towns where ' +
    'schools clinics markets libraries gardens expected better connections because older roads flooded every spring when snow melted ' +
    'quickly over hills farms mills bakers fishermen teachers painters wrote letters which newspapers printed without changes since ' +
    'measurements samples results methods tables figures confirmed earlier findings under careful conditions'
  ).split(' '),
  de: (
    'der Hafen wurde im Frühjahr erweitert obwohl viele Anwohner gegen den Lärm klagten und die Stadt suchte nach einer Lösung welche ' +
    'Schiffe Züge Lastwagen gleichmäßig verteilt damit Straßen Brücken Schulen Gärten wieder ruhiger werden während Ingenieure Messungen ' +
    'prüfen Berichte schreiben Kosten schätzen Fristen setzen Bürger fragen Händler warten Lehrer erzählen Kinder zeichnen'
  ).split(' '),
  ar: (
    'قررت المدينة بناء جسر جديد قبل الشتاء رغم تحذيرات المهندسين من التكاليف وطلب السكان ليالي أكثر هدوءا بينما حملت القطارات الحبوب ' +
    'والأخشاب نحو البلدات الشمالية حيث انتظرت المدارس والأسواق والمكتبات طرقا أفضل لأن الطرق القديمة غمرتها المياه كل ربيع عندما ذاب الثلج'
  ).split(' '),
  he: (
    'העיר החליטה לבנות גשר חדש לפני החורף למרות אזהרות המהנדסים על העלויות והתושבים ביקשו לילות שקטים יותר בזמן שהרכבות נשאו תבואה ' +
    'ועצים אל ערי הצפון שבהן בתי הספר השווקים והספריות חיכו לדרכים טובות יותר כי הדרכים הישנות הוצפו בכל אביב כאשר השלג נמס'
  ).split(' '),
  fa: (
    'شهر تصمیم گرفت پیش از زمستان پل تازه‌ای بسازد هرچند مهندسان درباره هزینه‌ها هشدار داده بودند و ساکنان شب‌های آرام‌تری می‌خواستند ' +
    'در حالی که قطارها غله و چوب را به شهرهای شمالی می‌بردند جایی که مدرسه‌ها بازارها و کتابخانه‌ها راه‌های بهتری انتظار داشتند'
  ).split(' '),
}

export function sentence(random: Random, language: Language = 'en'): string {
  const words = Array.from({ length: random.between(8, 20) }, () => random.pick(vocabularies[language]))
  const [first = '', ...rest] = words
  return `${[first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(' ')}.`
}

export function paragraph(random: Random, language: Language = 'en', sentences = random.between(3, 6)): string {
  return Array.from({ length: sentences }, () => sentence(random, language)).join(' ')
}

export function title(random: Random, language: Language = 'en'): string {
  return sentence(random, language).split(' ').slice(0, random.between(4, 7)).join(' ').replace(/\.$/, '')
}
