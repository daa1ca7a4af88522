import { WordList } from './word-list.ts'

/*
 * Phrases on pages, in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Turkish,
 * Japanese, Chinese, Korean, Arabic and Hebrew.
 */

export const signIn = new WordList([
  'log in|login|log-in|sign in|signin|sign-in|log on|logon|sign on|log me in',
  'anmelden|anmeldung|einloggen|jetzt anmelden|einloggen & weiter|zum login|kundenlogin',
  "se connecter|connexion|connectez-vous|me connecter|identifiez-vous|s identifier|s'identifier|ouvrir une session",
  'iniciar sesion|inicia sesion|inicio de sesion|acceder|entrar|ingresar|identificate|identificarse|accede',
  'iniciar sessao|fazer login|entre|aceder|acessar|acesse sua conta',
  "accedi|entra|login utente|effettua l'accesso|area clienti|effettua il login",
  'inloggen|aanmelden|log in bij',
  'zaloguj|zaloguj sie|logowanie|zaloguj się',
  'войти|вход|авторизация|войдите|вход в систему|авторизоваться',
  'giris yap|oturum ac|giris|uye girisi',
  'ログイン|サインイン|ログオン',
  '登录|登陆|登入|登錄',
  '로그인|로그온',
  'تسجيل الدخول|دخول|سجل الدخول|سجّل الدخول',
  'התחברות|התחבר|כניסה|היכנס|כניסה לחשבון',
])

export const signOut = new WordList([
  'log out|logout|log-out|sign out|signout|sign-out|log off|logoff|sign off',
  'abmelden|ausloggen|logout durchführen',
  'se deconnecter|deconnexion|me deconnecter|fermer la session',
  'cerrar sesion|cierra sesion|desconectarse|salir de la cuenta|finalizar sesion',
  'terminar sessao|encerrar sessao|sair da conta|sair|fazer logout',
  'esci|disconnetti|disconnettiti|scollegati|logout utente',
  'uitloggen|afmelden',
  'wyloguj|wyloguj sie|wylogowanie',
  'выйти|выход|выйти из аккаунта|завершить сеанс',
  'cikis yap|oturumu kapat|guvenli cikis',
  'ログアウト|サインアウト|ログオフ',
  '退出登录|登出|注销|退出登入|退出账号',
  '로그아웃',
  'تسجيل الخروج|تسجيل خروج|خروج',
  'התנתק|התנתקות|יציאה מהחשבון|יציאה',
])

export const accountMenu = new WordList([
  'my account|your account|account settings|my profile|your profile|profile settings|account menu|user menu|my orders|dashboard|my dashboard|inbox|welcome back',
  'mein konto|mein profil|meine bestellungen|kontoeinstellungen|willkommen zurück|posteingang',
  'mon compte|mon profil|mes commandes|tableau de bord|mon espace',
  'mi cuenta|mi perfil|mis pedidos|panel de control|ajustes de la cuenta',
  'minha conta|meu perfil|meus pedidos|a minha conta|painel',
  'il mio account|il mio profilo|i miei ordini|mio account',
  'mijn account|mijn profiel|mijn bestellingen',
  'moje konto|mój profil|moje zamówienia',
  'мой аккаунт|мой профиль|личный кабинет|мои заказы|настройки аккаунта',
  'hesabim|profilim|siparislerim',
  'マイページ|マイアカウント|アカウント設定|ダッシュボード',
  '我的账户|我的账号|个人中心|我的帐户|我的订单|個人中心|我的帳戶',
  '내 계정|마이페이지|내 프로필|대시보드',
  'حسابي|ملفي الشخصي|لوحة التحكم',
  'החשבון שלי|הפרופיל שלי|לוח בקרה',
])

export const register = new WordList([
  'sign up|signup|sign-up|register|create account|create an account|create your account|join now|join|new customer|get started|start free trial|open an account',
  'registrieren|konto erstellen|neues konto|neu hier|konto eröffnen|neukunde',
  "s'inscrire|inscription|creer un compte|creez votre compte|nouveau client",
  'registrarse|registrate|crear cuenta|crear una cuenta|registro|nueva cuenta',
  'cadastre-se|cadastrar|criar conta|registar|registe-se|criar uma conta',
  'registrati|crea account|crea un account|iscriviti',
  'registreren|account aanmaken|nieuw account',
  'zarejestruj|zarejestruj sie|zaloz konto|rejestracja|utworz konto',
  'регистрация|зарегистрироваться|создать аккаунт|создать учетную запись',
  'kayit ol|uye ol|hesap olustur',
  '新規登録|会員登録|アカウント作成|アカウントを作成|サインアップ',
  '注册|註冊|创建账户|创建帐户|建立帳戶|立即注册',
  '회원가입|가입하기|계정 만들기',
  'إنشاء حساب|التسجيل|اشترك|انشاء حساب',
  'הרשמה|הירשם|צור חשבון|יצירת חשבון',
])

export const notLogin = new WordList([
  'newsletter|subscribe|search|contact us|send message|get updates|comment|coupon|promo code|track order|notify me|checkout as guest|zip code',
  'abonnieren|suche|suchen|kontaktieren|gutschein|nachricht senden',
  "s'abonner|abonnez-vous|rechercher|infolettre|lettre d'information",
  'suscribirse|suscribete|buscar|boletin|cupon',
  'assinar|pesquisar|inscreva-se|boletim',
  'iscriviti alla newsletter|cerca|ricerca',
  'abonneren|zoeken|nieuwsbrief',
  'subskrybuj|szukaj|zapisz sie',
  'подписаться|поиск|искать|рассылка',
  'abone ol|ara|bulten',
  '検索|購読|メルマガ',
  '搜索|订阅|訂閱|搜尋',
  '검색|구독',
  'بحث|اشترك في النشرة',
  'חיפוש|הרשמה לניוזלטר',
])

export const proceed = new WordList([
  'next|continue|proceed|submit|verify|confirm|go|ok|send|log in|sign in|enter|done',
  'weiter|fortfahren|bestätigen|absenden|prüfen|senden',
  'suivant|continuer|valider|confirmer|envoyer|verifier',
  'siguiente|continuar|enviar|confirmar|verificar|aceptar',
  'seguinte|proximo|avancar|prosseguir|validar',
  'avanti|continua|conferma|invia|verifica|prosegui',
  'volgende|doorgaan|verder|bevestigen|versturen|verifieren|controleren',
  'dalej|kontynuuj|potwierdz|wyslij|zweryfikuj',
  'далее|продолжить|подтвердить|отправить|проверить',
  'ileri|devam|devam et|onayla|gonder|dogrula',
  '次へ|続ける|続行|確認|送信|進む',
  '下一步|继续|繼續|确认|確認|提交|验证|驗證',
  '다음|계속|확인|제출|인증',
  'التالي|متابعة|تأكيد|إرسال|تحقق|استمرار',
  'הבא|המשך|אישור|שלח|אמת',
])

export const stayIn = new WordList([
  "stay signed in|keep me signed in|keep me logged in|stay logged in|remember me|remember this device|trust this device|trust this browser|don't ask again|remember this browser|this is my device|save this device",
  'angemeldet bleiben|eingeloggt bleiben|diesem gerät vertrauen|gerät merken',
  'rester connecte|se souvenir de moi|faire confiance a cet appareil|maintenir la connexion|restez connecte',
  'mantener la sesion|recordarme|recuerdame|mantenerme conectado|confiar en este dispositivo|mantener la sesion iniciada',
  'lembrar de mim|manter sessao|continuar conectado|manter conectado|lembrar-me|confiar neste dispositivo',
  "ricordami|resta connesso|rimani connesso|mantieni l'accesso|considera attendibile",
  'aangemeld blijven|ingelogd blijven|onthoud mij|vertrouw dit apparaat',
  'zapamietaj mnie|nie wylogowuj|pozostan zalogowany|zaufaj',
  'запомнить меня|оставаться в системе|не выходить|доверять этому устройству',
  'beni hatirla|oturumum acik kalsin|oturum acik kalsin',
  'ログインしたまま|ログイン状態を保持|サインインしたまま|サインインの状態を維持|次回から自動',
  '保持登录|记住我|保持登入|记住密码|自动登录|信任此设备|記住我|下次自动登录',
  '로그인 상태 유지|자동 로그인|로그인 유지',
  'تذكرني|البقاء متصلا|ابق مسجلا',
  'זכור אותי|השאר אותי מחובר|הישאר מחובר',
])

export const yes = new WordList([
  'yes|ja|oui|si|sim|tak|да|evet|はい|是|예|네|نعم|כן|yes, stay signed in|yes, trust|trust|ja, vertrauen|trust this device|trust this browser|stay signed in|remember this device',
])

/** Buttons that skip optional offers after a login. */
export const skip = new WordList([
  "skip|skip for now|not now|maybe later|remind me later|no thanks|no, thanks|later|do this later|ask me later|skip this step|not today|i'll do it later",
  'überspringen|nicht jetzt|später|später erinnern|nein danke|nein, danke|jetzt nicht|vorerst überspringen',
  "ignorer|passer|pas maintenant|plus tard|non merci|me le rappeler plus tard|ignorer pour l'instant",
  'omitir|ahora no|mas tarde|no, gracias|no gracias|saltar|omitir por ahora|recordar mas tarde',
  'pular|agora nao|mais tarde|nao, obrigado|ignorar|nao, obrigada',
  'salta|non ora|piu tardi|no, grazie|no grazie|ignora|ricordamelo piu tardi',
  'overslaan|niet nu|later|nee, bedankt|nee bedankt|nu niet',
  'pomin|nie teraz|pozniej|nie, dziekuje|przypomnij pozniej',
  'пропустить|не сейчас|позже|нет, спасибо|напомнить позже',
  'atla|simdi degil|daha sonra|hayir, tesekkurler',
  'スキップ|後で|今はしない|あとで|今はスキップ',
  '跳过|暂不|以后再说|稍后|不，谢谢|跳過|稍後|现在不|以后再说吧',
  '건너뛰기|나중에|다음에',
  'تخطي|ليس الآن|لاحقا',
  'דלג|לא עכשיו|אחר כך',
])

export const cookies = new WordList([
  'cookie|cookies|gdpr|dsgvo|tracking technologies|traceurs|pliki cookie|plikow cookie|куки|файлы cookie|файлов cookie|cerez|cerezler|cerezleri|cerezi|クッキー|쿠키|ملفات تعريف الارتباط|الكوكيز|קובצי cookie|עוגיות',
])

export const refuseCookies = new WordList([
  'reject|reject all|reject all cookies|decline|decline all|deny|deny all|only necessary|necessary only|only essential|essential only|use necessary cookies only|accept only essential|refuse|refuse all|continue without accepting|disagree|necessary cookies only|accept necessary|only required|reject optional cookies|reject non-essential|essential cookies only|allow essential only',
  'ablehnen|alle ablehnen|nur notwendige|nur erforderliche|nur essenzielle|nur notwendige cookies|ohne zustimmung weiter|nur notwendige akzeptieren',
  'refuser|tout refuser|continuer sans accepter|refuser tout|uniquement necessaires',
  'rechazar|rechazar todo|rechazar todas|solo necesarias|solo las necesarias|denegar',
  'rejeitar|rejeitar tudo|recusar|rejeitar todos|apenas necessarios|somente necessarios',
  'rifiuta|rifiuta tutto|rifiuta tutti|solo necessari|continua senza accettare',
  'weigeren|alles weigeren|afwijzen|alles afwijzen|alleen noodzakelijk|alleen noodzakelijke',
  'odrzuc|odrzuc wszystkie|odrzuc wszystko|tylko niezbedne',
  'отклонить|отклонить все|отказаться|только необходимые',
  'reddet|tumunu reddet|yalnizca gerekli',
  '拒否|すべて拒否|必要なもののみ|同意しない|必須のみ',
  '拒绝|全部拒绝|拒絕|仅必要|全部拒絕',
  '거부|모두 거부|필수만',
  'رفض|رفض الكل',
  'דחה|דחה הכל|דחייה',
])

export const acceptCookies = new WordList([
  "accept|accept all|accept all cookies|accept cookies|allow all|allow all cookies|allow cookies|agree|i agree|got it|ok|okay|understood|i accept|agree and close|that's ok|i understand|close|dismiss|allow",
  'akzeptieren|alle akzeptieren|zustimmen|einverstanden|verstanden|alle cookies akzeptieren|alles klar|allen zustimmen|schliessen',
  "accepter|tout accepter|j'accepte|accepter et fermer|d'accord|accepter tout|compris|fermer",
  'aceptar|aceptar todo|aceptar todas|aceptar cookies|entendido|de acuerdo|cerrar',
  'aceitar|aceitar tudo|aceitar todos|concordo|aceito|entendi|fechar',
  'accetta|accetta tutto|accetta tutti|accetto|ho capito|chiudi|va bene',
  'accepteren|alles accepteren|akkoord|ik ga akkoord|begrepen|sluiten',
  'akceptuje|akceptuj|zaakceptuj|zaakceptuj wszystkie|akceptuj wszystkie|zgadzam sie|rozumiem|zamknij',
  'принять|принять все|согласен|принимаю|хорошо|понятно|закрыть',
  'kabul et|tumunu kabul et|kabul ediyorum|tamam|anladim|kapat',
  '同意する|すべて同意|承諾|許可|すべて許可|閉じる|同意して閉じる|了解',
  '接受|全部接受|同意|接受所有|允许|知道了|关闭|接受全部|關閉',
  '동의|모두 동의|수락|모두 수락|허용|확인|닫기',
  'قبول|موافق|قبول الكل|أوافق',
  'אישור|אני מסכים|קבל|קבל הכל|מאשר|סגור',
])

export const terms = new WordList([
  'terms|terms of service|terms of use|terms and conditions|user agreement|privacy policy|license agreement|acceptable use|updated our terms',
  'nutzungsbedingungen|agb|allgemeine geschäftsbedingungen|datenschutzerklärung|bedingungen',
  "conditions d'utilisation|conditions generales|politique de confidentialite|cgu|conditions",
  'terminos|terminos y condiciones|condiciones de uso|terminos del servicio|politica de privacidad|condiciones',
  'termos|termos de uso|termos de servico|politica de privacidade|termos e condicoes',
  "termini|termini di servizio|condizioni d'uso|termini e condizioni|condizioni",
  'voorwaarden|gebruiksvoorwaarden|algemene voorwaarden',
  'regulamin|warunki|warunki korzystania|polityka prywatnosci',
  'условия|условия использования|пользовательское соглашение|соглашение',
  'kosullar|kullanim kosullari|sozlesme|sartlar',
  '利用規約|規約',
  '服务条款|使用条款|用户协议|服務條款|条款|使用條款',
  '이용약관|약관',
  'الشروط|شروط الاستخدام|الأحكام',
  'תנאי|תנאי שימוש|תנאי השימוש|תקנון',
])

export const acceptTerms = new WordList([
  'accept|i accept|agree|i agree|accept and continue|agree and continue|accept terms|accept & continue|agree & continue|i have read and agree|i have read and accept|yes, i agree|accept all|continue',
  'akzeptieren|ich akzeptiere|zustimmen|ich stimme zu|einverstanden|annehmen|akzeptieren und weiter|zustimmen und weiter|ich habe gelesen',
  "accepter|j'accepte|accepter et continuer|j'ai lu et j'accepte",
  'aceptar|acepto|aceptar y continuar|estoy de acuerdo|he leido y acepto',
  'aceitar|aceito|aceitar e continuar|concordo|li e aceito',
  'accetta|accetto|accetta e continua|ho letto e accetto',
  'accepteren|ik accepteer|akkoord|ik ga akkoord|accepteren en doorgaan',
  'akceptuje|akceptuj|zgadzam sie|zaakceptuj|akceptuje i kontynuuje',
  'принять|принимаю|согласен|я согласен|принять и продолжить|согласиться',
  'kabul et|kabul ediyorum|onayliyorum|kabul et ve devam et',
  '同意する|同意して続行|同意して次へ|承諾|同意',
  '同意|接受|我同意|同意并继续|接受并继续|同意並繼續',
  '동의|동의합니다|동의하고 계속|수락',
  'أوافق|موافق|قبول|قبول ومتابعة',
  'אני מסכים|אני מסכימה|מסכים|אישור|קבל',
])

/** Controls beside a form that do not log in. */
export const aside = new WordList([
  "forgot|forgotten|reset|lost your|help|support|privacy|cancel|back|go back|contact|about|language|english|deutsch|français|español|report|learn more|faq|show password|hide password|show|hide|resend|send again|send a new code|didn't get|didn't receive|close|not you",
  'vergessen|zurücksetzen|hilfe|datenschutz|abbrechen|zurück|impressum|kontakt|anzeigen|erneut senden|neu senden|mehr erfahren',
  'oublie|reinitialiser|aide|confidentialite|annuler|retour|mentions legales|afficher|renvoyer|en savoir plus',
  'olvidado|olvidaste|olvide|restablecer|ayuda|privacidad|cancelar|volver|mostrar|reenviar|mas informacion',
  'esqueceu|esqueci|redefinir|ajuda|privacidade|cancelar|voltar|mostrar|reenviar|saiba mais',
  'dimenticat|dimenticato|dimenticata|reimposta|aiuto|annulla|indietro|mostra|invia di nuovo|scopri di piu',
  'vergeten|herstellen|hulp|annuleren|terug|tonen|opnieuw versturen|meer informatie',
  'zapomnial|nie pamietasz|zresetuj|pomoc|anuluj|wstecz|pokaz|wyslij ponownie',
  'забыли|восстановить|помощь|отмена|назад|показать|отправить повторно|подробнее',
  'unuttum|unuttunuz|sifirla|yardim|iptal|geri|goster|yeniden gonder',
  '忘れ|リセット|ヘルプ|キャンセル|戻る|表示|再送信|プライバシー',
  '忘记|忘記|重置|找回|帮助|取消|返回|显示|重新发送|隐私',
  '잊으|찾기|재설정|도움말|취소|뒤로|표시|재전송|개인정보',
  'نسيت|إعادة تعيين|مساعدة|إلغاء|رجوع|إظهار|إعادة إرسال',
  'שכחת|שכחתי|איפוס|עזרה|ביטול|חזרה|הצג|שלח שוב',
])

/** "Allow" on pages that ask whether a service may share the user's identity. */
export const allow = new WordList([
  'allow|authorize|authorise|grant|grant access|approve|continue as|allow access|zulassen|autorisieren|erlauben|autoriser|autorizar|permitir|autorizza|consenti|toestaan|zezwol|autoryzuj|разрешить|izin ver|許可|許可する|承認|授权|允许|授權|허용|السماح|אפשר',
])
